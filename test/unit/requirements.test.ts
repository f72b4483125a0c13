import { expect, test } from 'vitest';
import { MCP_REQUIREMENTS } from '../requirements.ts';
import { flaw, type Requirement } from '../support/requirement.ts';

const tables = { MCP_REQUIREMENTS };
const rows: Requirement[] = Object.values(tables).flat();

test('every row of the tables of requirements names tests that exist and are not skipped', () => {
  const flaws = rows.map((row) => [row.id, flaw(row)]).filter(([, what]) => what !== undefined);
  expect(flaws).toEqual([]);
});

test('every row has an id of its own', () => {
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
});

test('a row whose test is missing, skipped or in no file is told', () => {
  const row = (provedBy: Requirement['provedBy']) =>
    flaw({ id: 'x', source: 'x', level: 'MUST', says: 'x', provedBy });
  expect(row(['unit/requirements.test.ts › every row has an id of its own'])).toBeUndefined();
  expect(row(['unit/requirements.test.ts › no such title'])).toMatch(/^no test .no such title. in unit/);
  expect(row(['unit/nowhere.test.ts › x'])).toBe('no file unit/nowhere.test.ts');
  expect(row({ doesNotApply: '' })).toBe('no reason why not');
});
