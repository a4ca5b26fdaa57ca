"""Long conversations behind one payment: what they pay at the start covers however many questions."""

from discreet.session.design import Design
from discreet.session.weights import PMW

__all__ = ["PMW", "Design"]
