"""What hypothesis draws in more than one place."""

from hypothesis import strategies as st


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
