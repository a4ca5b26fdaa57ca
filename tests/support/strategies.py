"""What hypothesis draws in more than one place."""

from hypothesis import given, settings
from hypothesis import strategies as st


def examples(few, many):
    """How many examples of a law are tried: few in `make test`, many in `make test-long`."""
    return many if settings.get_current_profile_name() == "searching" else few


def combined(atoms, max_leaves):
    """Predicates built from atoms with &, | and ~."""
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.builds(lambda p, q: p & q, inner, inner),
            st.builds(lambda p, q: p | q, inner, inner),
            st.builds(lambda p: ~p, inner),
        ),
        max_leaves=max_leaves,
    )


seeds = st.integers(0, 2**32 - 1)


def law(examples):
    """A law about random objects, tried with so many seeds of numpy's generator."""
    return lambda test: settings(max_examples=examples)(given(seed=seeds)(test))
