"""The small client behind call, walk and demo."""
