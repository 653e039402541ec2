// Requests that no client would send, as bytes: valid ones with one defect. raw-fuzz.ts sends them to a server.

import type { Dice } from './seeded-random.ts'

const group = '/kubernetes/management/apis/management.platform.sh/v1'
const object = '{"metadata":{"name":"n1","labels":{"a":"b"}},"spec":{"description":"x","users":["u"]}}'

/** Method, path, content type, body. */
const templates: readonly (readonly [string, string, string, string])[] = [
  ['GET', `${group}/teams`, '', ''],
  ['GET', `${group}/teams?limit=5&labelSelector=a%3Db&fieldSelector=metadata.name%3Dn1`, '', ''],
  ['GET', `${group}/teams?resourceVersion=3&resourceVersionMatch=Exact`, '', ''],
  ['GET', `${group}/teams/n1?pretty=true`, '', ''],
  ['GET', '/kubernetes/management/openapi/v3/apis/management.platform.sh/v1', '', ''],
  ['GET', '/kubernetes/management/apis', '', ''],
  ['GET', '/readyz?verbose', '', ''],
  ['POST', `${group}/teams?fieldValidation=Strict`, 'application/json', object],
  ['POST', `${group}/teams?dryRun=All`, 'application/yaml', 'metadata:\n  name: n1\nspec: {description: "x"}\n'],
  ['POST', `${group}/namespaces/default/projectsecrets`, 'application/json', object],
  ['POST', `${group}/selfsubjectaccessreviews`, 'application/json', '{"spec":{"resourceAttributes":{"verb":"get"}}}'],
  ['PUT', `${group}/teams/n1`, 'application/json', object],
  ['PATCH', `${group}/teams/n1`, 'application/merge-patch+json', '{"spec":{"description":null}}'],
  ['PATCH', `${group}/teams/n1`, 'application/json-patch+json', '[{"op":"add","path":"/spec/users/-","value":"v"}]'],
  ['PATCH', `${group}/teams/n1`, 'application/strategic-merge-patch+json', '{"spec":{"$patch":"replace"}}'],
  ['PATCH', `${group}/teams/n1?fieldManager=m&force=true`, 'application/apply-patch+yaml', `apiVersion: v1\n${object}`],
  ['DELETE', `${group}/teams/n1`, 'application/json', '{"propagationPolicy":"Foreground","preconditions":{"uid":"1"}}'],
  ['DELETE', `${group}/teams?labelSelector=a%3Dc`, '', ''],
]

const pieces = [
  ...['%00', '%2e%2e%2f', '%ff', '%', '..', '//', '?', '&', '=', ';', '#', '\\', '{', '}', '[', ']', '"', "'", ','],
  ...['-1', '0', '1e999', '99999999999999999999', '18446744073709551616', 'NaN', 'null', 'true', '[]', '{}', '""'],
  ...['__proto__', 'constructor', 'toString', '$patch', '$deleteFromPrimitiveList', '$retainKeys', 'metadata', 'spec'],
  ...[
    '\u0000',
    '\ud83d\ude00',
    '\u202e',
    'é',
    '\t',
    ' ',
    '&a *a',
    '<<: *a',
    '!!js/function',
    '|\n  ',
    '- ',
    ': ',
    '\n',
  ],
  ...[
    '/-',
    '~0',
    '~1',
    '~2',
    'in (a,b)',
    'notin ()',
    '!a',
    'a!=b',
    'x'.repeat(300),
    '['.repeat(120),
    '{"a":'.repeat(120),
  ],
]
const headers = [
  ...['Accept: application/json;as=Table;v=v1;g=meta.k8s.io', 'Accept: */*;q=nope', 'Accept: application/yaml'],
  ...['Accept-Encoding: gzip', 'Expect: 100-continue', 'If-Match: *', 'Range: bytes=0-1', 'X-Forwarded-For: a, b, ::1'],
  ...[
    'Impersonate-User: x',
    'Impersonate-Group: y',
    'Impersonate-Extra-a%: z',
    'Impersonate-Uid: 1',
    'User-Agent: /\\/',
  ],
  ...['Audit-Id: x', 'Cookie: a=b', 'Origin: https://example.org', 'Sec-WebSocket-Key: x', 'Traceparent: 00-0-0-0'],
]

export function bend(text: string, roll: Dice): string {
  let bent = text
  for (let times = 1 + roll(3); times > 0; times--) {
    const at = roll(bent.length + 1)
    const piece = pieces[roll(pieces.length)] as string
    const kind = roll(4)
    if (kind === 0) bent = bent.slice(0, at) + piece + bent.slice(at)
    else if (kind === 1) bent = bent.slice(0, at) + bent.slice(at + 1 + roll(8))
    else if (kind === 2) bent = bent.slice(0, at) + piece + bent.slice(at + piece.length)
    else bent = bent.slice(0, at) + bent.slice(roll(bent.length + 1))
  }
  return bent.slice(0, 20_000)
}

/** A request with a clear start and end, and otherwise invalid, so that more can follow on the connection. */
export function framedRequest(key: string, isLast: boolean, roll: Dice): Buffer {
  const [method, path, type, body] = templates[roll(templates.length)] as (typeof templates)[number]
  const target = roll(2) ? path : encodeURI(bend(path, roll).toWellFormed()).replaceAll(/[\s#]/g, '+')
  const sent = Buffer.from(body && roll(3) ? bend(body, roll) : body)
  const more = roll(3) ? [] : [headers[roll(headers.length)] as string]
  const lines = [
    `${method} ${target.startsWith('/') ? target : `/${target}`} HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${roll(20) ? key : bend(key, roll).replaceAll(/[^!-~]/g, '')}`,
    ...(type ? [`Content-Type: ${roll(8) ? type : bend(type, roll).replaceAll(/[^ -~]/g, '')}`] : []),
    `Content-Length: ${sent.length}`,
    ...more,
    ...(isLast ? ['Connection: close'] : []),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), sent])
}

const framings = [
  ...[
    'Content-Length: 5\r\nContent-Length: 6',
    'Transfer-Encoding: chunked\r\nContent-Length: 3',
    'Content-Length: -1',
  ],
  ...[
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding : chunked',
    'Content-Length: 99999999999',
    'Host: a\r\nHost: b',
  ],
  ...[' folded: x', 'Upgrade: websocket\r\nConnection: Upgrade', 'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings'],
  ...[
    'Connection: close, keep-alive',
    ': empty',
    'A\u0000: b',
    `A: ${'a'.repeat(20_000)}`,
    'a: b\r\n'.repeat(2500).trimEnd(),
  ],
]

/** A request without a clear end. */
export function brokenRequest(key: string, roll: Dice): Buffer {
  const whole = framedRequest(key, true, roll)
  const kind = roll(4)
  if (kind === 0) return whole.subarray(0, roll(whole.length))
  if (kind === 1) {
    const text = whole.toString('latin1').replace('\r\n', `\r\n${framings[roll(framings.length)]}\r\n`)
    return Buffer.from(text, 'latin1')
  }
  const bytes = Buffer.from(whole)
  for (let times = 1 + roll(6); times > 0; times--) bytes[roll(bytes.length)] = roll(256)
  return kind === 2
    ? bytes
    : Buffer.concat([bytes, Buffer.from(`${(roll(70_000) - 1).toString(16)}\r\nx\r\n0\r\n\r\n`)])
}
