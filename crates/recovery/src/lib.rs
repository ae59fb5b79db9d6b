//! Loss detection and congestion control as arithmetic: RFC 9002, RFC 9438, the sent-packet ledger, the pacer.
