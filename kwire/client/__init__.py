"""The small client behind `call`, `walk` and `demo`: blocking sockets with deadlines, every frame kept."""
