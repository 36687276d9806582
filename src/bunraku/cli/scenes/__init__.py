"""Scenes that `bunraku demo` plays."""
