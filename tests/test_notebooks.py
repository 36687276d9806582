"""In notebooks mechanisms, simulations, evaluations and plots show themselves."""

import xml.etree.ElementTree as ET

import numpy as np

import bunraku as bk
from bunraku.view.plots import plot


def parsed(html: str) -> ET.Element:
    return ET.fromstring(f"<div>{html.replace('&nbsp;', ' ')}</div>")


def test_a_mechanism_is_a_table_of_its_links_and_connections():
    m = bk.models.four_bar()
    m.add_link("<hand> & foot", m.link_names[-1], mass=1.0)
    page = parsed(m._repr_html_())
    cells = {cell.text.strip() for cell in page.iter("td")}
    assert {*m.link_names, *m.connections} <= cells


def test_a_large_mechanism_is_folded():
    page = parsed(bk.models.human(dof=34)._repr_html_())
    assert page.find("details") is not None


def test_an_evaluation_is_a_table_of_forces():
    m = bk.models.chain(3)
    r = bk.dynamics(m, np.zeros(3), np.zeros(3))
    rows = {row[0].text: [float(cell.text) for cell in row[1:]] for row in parsed(r._repr_html_()).iter("tr")
            if row[0].tag == "td"}
    assert rows.keys() == r.forces.keys()
    for name, wrench in r.forces.items():
        np.testing.assert_allclose(rows[name], wrench, rtol=1e-5, atol=1e-12)


def test_a_simulation_shows_its_motion():
    sim = bk.Simulation(bk.models.chain(2), q=[0.3, 0.0])
    assert "<table>" in sim._repr_html_()
    sim.run(0.1)
    assert "<iframe" in sim._repr_html_()


def test_a_plot_is_a_picture_and_its_panels(tmp_path):
    sim = bk.Simulation(bk.models.chain(2), q=[0.3, 0.0])
    sim.run(0.1)
    drawn = plot(sim, what=["energy", "q"])
    assert drawn._repr_png_().startswith(b"\x89PNG")
    assert [panel.label for panel in drawn] == ["energy [J]", drawn[1].label]
    assert drawn.save(tmp_path / "a.svg").read_text().lstrip().startswith("<?xml")
