"""Answer requests by hosted APIs: requests in, replies or failures out, each paid once. Read `hosted_chat`."""
