import { expect, test } from 'vitest';
import { isPublicAddress } from '../../src/provider/addresses.ts';

test.each([
  ['loopback', '127.0.0.1'],
  ['loopback elsewhere', '127.255.0.9'],
  ['this host', '0.0.0.0'],
  ['private', '10.0.0.1'],
  ['private', '172.31.255.255'],
  ['private', '192.168.1.1'],
  ['shared (RFC 6598)', '100.64.0.1'],
  ['a metadata service', '169.254.169.254'],
  ['a metadata service in shared space', '100.100.100.200'],
  ['a platform service at a public address', '168.63.129.16'],
  ['link-local', '169.254.1.1'],
  ['multicast', '224.0.0.1'],
  ['reserved', '240.0.0.1'],
  ['broadcast', '255.255.255.255'],
  ['benchmarks', '198.18.0.1'],
  ['documentation', '203.0.113.9'],
  ['loopback, IPv6', '::1'],
  ['unspecified, IPv6', '::'],
  ['IPv4-mapped', '::ffff:127.0.0.1'],
  ['IPv4-mapped in hexadecimal', '::ffff:7f00:1'],
  ['IPv4-mapped in full', '0:0:0:0:0:ffff:7f00:1'],
  ['IPv4-mapped metadata', '::ffff:169.254.169.254'],
  ['NAT64', '64:ff9b::7f00:1'],
  ['NAT64 of a metadata service', '64:ff9b::a9fe:a9fe'],
  ['local NAT64', '64:ff9b:1::1'],
  ['6to4', '2002:7f00:1::'],
  ['Teredo', '2001::1'],
  ['unique local', 'fc00::1'],
  ['unique local metadata', 'fd00:ec2::254'],
  ['link-local, IPv6', 'fe80::1'],
  ['link-local with a zone', 'fe80::1%eth0'],
  ['multicast, IPv6', 'ff02::1'],
  ['documentation, IPv6', '2001:db8::1'],
  ['no address', 'localhost'],
])('%s (%s) is not public', (_, address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each([
  '1.1.1.1',
  '140.82.121.4',
  '100.63.255.255',
  '172.32.0.1',
  '2606:4700:4700::1111',
  '2a00:1450:4001::200e',
])('%s is public', (address) => {
  expect(isPublicAddress(address)).toBe(true);
});
