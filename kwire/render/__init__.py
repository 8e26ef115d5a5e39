"""What a person sees. Every view reads the span tree or a definition, and gives lines of styled pieces."""
