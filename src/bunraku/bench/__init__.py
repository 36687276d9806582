"""Measurements beside other libraries; needs the extra [bench]."""
