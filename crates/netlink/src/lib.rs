//! Questions and orders to the kernel about links, addresses, routes and neighbours, over rtnetlink and ethtool.
#![forbid(unsafe_code)]
