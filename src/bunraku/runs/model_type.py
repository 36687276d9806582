"""The Numba type of the model in one compiled function, and the words behind it.

The model is the address of a few words: where the plan of the present structure is, the sizes, then what the names in
the function stand for there. The type collects the names, which are constants, while the function is compiled.
"""

from __future__ import annotations

import itertools

from llvmlite import ir
from numba import types
from numba.extending import infer_getattr, intrinsic, models, register_model

from bunraku.checks import hint
from bunraku.compiler.handles import POINTER
from bunraku.compiler.numba_inside import AttributeTemplate, lower_getattr_generic
from bunraku.contact.contact_entries import CONTACTS
from bunraku.entries.signatures import PLAN
from bunraku.errors import ModelError
from bunraku.runs.model import NAMES_AT, NQ_AT, NV_AT, PLAN_AT, PlanModel


class ModelType(types.Type):
    """Numba type of the model of one function, with the names in it, [(kind, name)], in the order of their numbers."""

    def __init__(self, function: str):
        self.function = function
        self.names: list[tuple[str, str]] = []
        super().__init__(name=f"model of {function} {next(_count)}")

    def place(self, kind: str, name, method: str) -> int:
        """Where the number of a name is among the words of the model."""
        if not isinstance(name, types.StringLiteral):
            raise ModelError(f"model.{method} in {self.function!r}: the name must be a constant, such as 'hand', or a "
                             f"variable of the function around this one, not {name}")
        key = kind, name.literal_value
        if key not in self.names:
            self.names.append(key)
        return NAMES_AT + self.names.index(key)


_count = itertools.count()


@register_model(ModelType)
class _ModelOfModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.IntType(64))


def as_argument(kind: ModelType):
    """A function for compiled code: the address of the words, an integer, as the model."""
    @intrinsic
    def as_model(typingctx, word):
        return kind(types.int64), lambda context, builder, sig, args: args[0]
    return as_model


def _word(context, builder, model, place):
    words = builder.inttoptr(model, ir.IntType(64).as_pointer())
    return builder.load(builder.gep(words, [place]))


@intrinsic
def number_at(typingctx, model, place):
    """The word at a place."""
    return types.int64(model, types.int64), lambda context, builder, sig, args: _word(context, builder, *args)


@intrinsic
def plan_of(typingctx, model):
    def generate(context, builder, sig, args):
        return builder.inttoptr(_word(context, builder, args[0], ir.IntType(64)(PLAN_AT)), POINTER)
    return PLAN(model), generate


@intrinsic
def shapes_at(typingctx, model, place):
    def generate(context, builder, sig, args):
        return builder.inttoptr(_word(context, builder, *args), POINTER)
    return CONTACTS(model, types.int64), generate


@infer_getattr
class _Sizes(AttributeTemplate):
    key = ModelType

    def generic_resolve(self, model, name):
        if name in ("nq", "nv"):
            return types.int64
        if not hasattr(PlanModel, name):
            raise ModelError(f"model.{name} in {model.function!r}: the model has no such method"
                             f"{hint(name, ['nq', 'nv', *(n for n in vars(PlanModel) if n[0] != '_')])}")
        return None


@lower_getattr_generic(ModelType)
def _read_size(context, builder, kind, model, name):
    return _word(context, builder, model, ir.IntType(64)(NQ_AT if name == "nq" else NV_AT))
