"""The lecture hall: textbook algorithms, lecture claims, attacks, the demonstration. The product never imports it."""
