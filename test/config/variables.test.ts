import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTemplate, escapeReferences } from '../../src/config/variables.ts';

const env = { A: 'one', B: '${A}', EMPTY: '', _x1: 'low' };

/** As if the whole text were one string of the file. */
function expand(text: string) {
  const template = createTemplate(text, env);
  return template.expand(template.marked);
}

describe('references to variables', () => {
  it.each([
    ['plain', 'plain'],
    ['${A}', 'one'],
    ['x${A}y${A}', 'xoneyone'],
    ['${A}${_x1}', 'onelow'],
    ['${EMPTY}', ''],
    ['$${A}', '${A}'],
    ['$$${A}', '$${A}'],
    ['$${', '${'],
    ['$A $ {A} $$', '$A $ {A} $$'],
    ['}{', '}{'],
  ])('%s becomes %j', (text, expanded) => expect(expand(text)).toEqual({ text: expanded }));

  it('are not looked for in what a variable holds', () => {
    expect(expand('${B}')).toEqual({ text: '${A}' });
  });

  it('name every variable that is not set', () => {
    expect(expand('${NOPE} ${A} ${NADA} ${NOPE}')).toEqual({
      fault: 'the variable NOPE is not set; the variable NADA is not set',
    });
  });

  it.each(['${', '${}', '${A', '${1A}', '${A B}', '${A:-x}'])('are malformed in %s', text => {
    expect(expand(text)).toEqual({ fault: expect.stringContaining('expected ${NAME}') });
  });

  it('keep every character in its place while marked', () => {
    const text = 'a: ${A}\nb: {c: ${LONG_NAME}}';
    const { marked, names, restore } = createTemplate(text, env);
    expect(marked).toHaveLength(text.length);
    expect(marked).not.toContain('${');
    expect([...names]).toEqual(['A', 'LONG_NAME']);
    expect(restore(marked)).toBe(text);
  });

  it('are not seen in text that uses the marks itself', () => {
    const text = '\uE000\uE000A\uE000 ${A}';
    expect(expand(text)).toEqual({ text: '\uE000\uE000A\uE000 one' });
  });

  it('can be escaped in any text', () => {
    const piece = fc.constantFrom('$', '{', '}', 'A', '${A}', ' ', '\uE000');
    const texts = fc.oneof(
      fc.string(),
      fc.array(piece).map(pieces => pieces.join('')),
    );
    fc.assert(
      fc.property(texts, text => {
        expect(expand(escapeReferences(text))).toEqual({ text });
      }),
    );
  });
});
