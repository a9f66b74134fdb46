"""What decides: pure objects that take bytes and a `now` and give values, without awaiting, files or clocks."""
