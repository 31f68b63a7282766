"""A small app on `dynamo.forms` and `dynamo.views`, without the site."""
