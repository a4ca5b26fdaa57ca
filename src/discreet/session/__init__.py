"""Long conversations behind one payment: what they pay at the start covers however many questions."""
