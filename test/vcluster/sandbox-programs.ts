// Makes programs by chance, from a seed: mostly odd, sometimes hostile, always one expression. For sandbox tests and proofs.

export type Chance = (below: number) => number

/** The same seed gives the same numbers (mulberry32). */
export function chanceOf(seed: number): Chance {
  let state = seed | 0
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}

const atoms = [
  ...[
    'value',
    'context',
    'valueExists',
    '0',
    '-1',
    '1e9',
    '2**32',
    'NaN',
    '""',
    '"a"',
    '"a".repeat(99)',
    'null',
    'undefined',
  ],
  ...[
    '[]',
    '{}',
    '[1,2,3]',
    '/a+/g',
    '1n',
    'Symbol.iterator',
    'Object',
    'Array',
    'Object.prototype',
    'Array.prototype',
  ],
  ...['Math', 'JSON', 'atob', 'btoa', 'virtualToHostDNS', 'Date', 'Map', 'Set', 'RegExp', 'Error', '(() => 0)', 'this'],
]
const members = [
  ...['length', 'constructor', 'prototype', '__proto__', 'name', 'x', 'map', 'join', 'repeat', 'fill', 'toString'],
  ...['valueOf', 'call', 'apply', 'bind', 'concat', 'sort', 'replace', 'split', 'keys', 'entries', 'assign', 'freeze'],
  ...[
    'defineProperty',
    'setPrototypeOf',
    'stringify',
    'parse',
    'from',
    'fromEntries',
    'flat',
    'padEnd',
    'then',
    'caller',
  ],
]
const binary = [
  '+',
  '-',
  '*',
  '**',
  '/',
  '%',
  '<<',
  '>>>',
  '&',
  '|',
  '==',
  '===',
  '<',
  'in',
  'instanceof',
  '&&',
  '||',
  '??',
  ',',
]
const unary = ['!', '-', '+', '~', 'typeof ', 'void ']

export function programOf(chance: Chance, depth = 4): string {
  const pick = (list: readonly string[]) => list[chance(list.length)] as string
  const inner = () => programOf(chance, depth - 1)
  if (depth <= 0) return pick(atoms)
  const shapes: (() => string)[] = [
    () => pick(atoms),
    () => `(${inner()})${pick(['.', '?.'])}${pick(members)}`,
    () => `(${inner()})[${inner()}]`,
    () => `(${inner()})(${inner()})`,
    () => `(${inner()}).${pick(members)}(${inner()}, ${inner()})`,
    () => `new (${inner()})(${inner()})`,
    () => `((${inner()}) ${pick(binary)} (${inner()}))`,
    () => `${pick(unary)}(${inner()})`,
    () => `((${inner()}) ? (${inner()}) : (${inner()}))`,
    () => `[${inner()}, ${inner()}]`,
    () => `[...(${inner()})]`,
    () => `({ ${pick(members)}: ${inner()}, [${inner()}]: ${inner()} })`,
    () =>
      `({ get ${pick(members)}() { return ${inner()} }, toString() { return ${inner()} }, toJSON() { return ${inner()} } })`,
    () => `\`\${${inner()}}\``,
    () => `(x => ${inner()})(${inner()})`,
    () => `(function f(x) { return x > 5 ? ${inner()} : f((x || 0) + 1) })(${inner()})`,
    () => `(() => { try { return ${inner()} } catch (e) { return ${inner()} } })()`,
    () =>
      `(() => { for (let i = 0; i < ${pick(['3', '5', '30', '99', '1e3', '1e3', '1e4', '1e9'])}; i++) { if (i === 99) ${inner()} } return ${inner()} })()`,
    () => `(() => { for (const key of [${inner()}]) (${inner()})[key] = ${inner()}; return ${inner()} })()`,
    () =>
      `(() => { const all = []; for (let i = 0; i < ${pick(['10', '99', '1e3', '1e3', '1e4', '1e5'])}; i++) all.push(${pick(atoms)}); return all.length })()`,
  ]
  return (shapes[chance(shapes.length)] as () => string)()
}
