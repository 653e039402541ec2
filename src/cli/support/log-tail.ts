// The end of a log file for a support bundle: known fields of each line, without names, addresses and free text.

import { isObject, type JsonObject } from '../../api/object.ts'
import { codeWord, plainWords, type Redaction } from './redact.ts'

const maxLines = 2000
const maxBytes = 4 * 1024 * 1024

/** Lines that are not JSON are only counted. */
export function logTail(bytes: Uint8Array, redaction: Redaction): string {
  const text = Buffer.from(bytes.subarray(Math.max(0, bytes.length - maxBytes))).toString()
  const lines = text.split('\n').filter(Boolean).slice(-maxLines)
  const shown = lines.flatMap(line => {
    const parsed = objectIn(line)
    return parsed ? [JSON.stringify(lineOf(parsed, redaction))] : []
  })
  const others = lines.length - shown.length
  return [...shown, ...(others ? [JSON.stringify({ otherLines: others })] : [])].map(line => `${line}\n`).join('')
}

export function objectIn(line: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const numbers = ['level', 'time', 'code', 'ms', 'suppressed'] as const
/** Random ids that the server made: the same as in the audit log and in traces. */
const id = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$|^[0-9a-f]{32}$/

function lineOf(line: JsonObject, redaction: Redaction): object {
  const shown: { [name: string]: unknown } = {}
  for (const name of numbers) if (typeof line[name] === 'number') shown[name] = line[name]
  for (const name of ['audit', 'trace'] as const)
    if (typeof line[name] === 'string' && id.test(line[name])) shown[name] = line[name]
  for (const name of ['method', 'reason', 'target'] as const) shown[name] = codeWord(line[name])
  for (const name of ['user', 'key'] as const)
    if (typeof line[name] === 'string') shown[name] = redaction.name(line[name])
  if (typeof line['path'] === 'string') shown['path'] = redaction.path(line['path'])
  if (typeof line['msg'] === 'string') shown['msg'] = plainWords(withoutFields(line['msg'], line))
  if (isObject(line['err'])) shown['err'] = errorOf(line['err'])
  return shown
}

/** Names in messages are in quotes, so they are not plain words, or they are also fields of the line. */
function withoutFields(message: string, { name, namespace }: JsonObject): string {
  const hidden = [name, namespace].filter(one => typeof one === 'string' && one !== '')
  const isHidden = (word: string) => hidden.some(one => word.split(/[^\w.-]/).includes(String(one)))
  return message
    .split(/\s+/)
    .map(word => (isHidden(word) ? '*' : word))
    .join(' ')
}

/** The message is left out, because it can contain anything. The stack shows the place in the code. */
const errorOf = ({ type, code, stack }: JsonObject) => ({
  type: codeWord(type),
  code: typeof code === 'number' ? code : codeWord(code),
  stack: typeof stack === 'string' ? framesIn(stack) : undefined,
})

const framesIn = (stack: string) =>
  stack
    .split('\n')
    .flatMap(
      line => /^\s+at .*?((?:\b(?:src|dist|node_modules)\/|node:)[\w@./-]{1,120}:\d+:\d+)\)?$/.exec(line)?.[1] ?? [],
    )
    .slice(0, 20)
