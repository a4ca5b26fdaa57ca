"""What a release says of itself: its card, its page and its charts."""
