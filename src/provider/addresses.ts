/**
 * Addresses that a server has no business in: private, loopback, link-local, metadata, and what maps onto
 * them.
 */
import { BlockList, isIP } from 'node:net';

const blocked = new BlockList();
// RFC 6890 and its updates; 169.254.0.0/16 holds the metadata services of clouds.
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Azure's platform services answer at a public address.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  blocked.addSubnet(net, bits, 'ipv4');
}
for (const [net, bits] of [
  ['::', 128],
  ['::1', 128],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  blocked.addSubnet(net, bits, 'ipv6');
}

/**
 * Whether an address is public. IPv4 addresses written as IPv6 (`::ffff:a.b.c.d`, `::a.b.c.d`) are never:
 * nobody needs them to reach a provider.
 */
export function isPublicAddress(address: string): boolean {
  const plain = address.split('%')[0] ?? address;
  const family = isIP(plain);
  if (family === 0) return false;
  if (family === 4) return !blocked.check(plain, 'ipv4');
  if (/^::(?:ffff:)?(?:\d+\.|[\da-f]{1,4}:[\da-f]{1,4}$)/i.test(plain)) return false;
  return !blocked.check(plain, 'ipv6');
}
