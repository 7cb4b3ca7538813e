/** What a policy refuses is told once, with where it was found out, and the verdict is what it was. */
import { expect, it } from 'vitest';
import { tellingRefusals } from '../../src/delivery/refusals.ts';
import { createTargetPolicy, type TargetPolicy, type Verdict } from '../../src/delivery/target.ts';

const policy = createTargetPolicy({
  allow: ['192.168.7.0/24'],
  listeners: () => [{ address: '127.0.0.1', port: 8080 }],
  localAddresses: () => [],
});

const judged = (address: string) => (each: TargetPolicy) => each.judge(address, 80, address);
const ofUrl = (url: string) => (each: TargetPolicy) => each.judgeUrl(new URL(url));

it.each<[what: string, judge: (policy: TargetPolicy) => Verdict, told: string[]]>([
  ['an address that is allowed', judged('192.168.7.1'), []],
  ['an address that is not', judged('10.0.0.1'), ['connect not_global']],
  ['what is no address', judged('nowhere'), ['connect unparsable']],
  ['a URL that is allowed', ofUrl('https://hooks.example.com/'), []],
  ['a URL that is not', ofUrl('http://[::1]/'), ['intake not_global']],
  ['a URL of two addresses', ofUrl('http://localhost:8080/'), ['intake own_listener']],
])('%s', (_, judge, told) => {
  const refused: string[] = [];
  const telling = tellingRefusals(policy, (where, reason) => refused.push(`${where} ${reason}`));
  expect(judge(telling)).toEqual(judge(policy));
  expect(refused).toEqual(told);
});
