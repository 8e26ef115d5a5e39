"""The embedded broker: asyncio around the coordinator and logs in memory."""
