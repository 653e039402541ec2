// Maps virtual namespaces to host namespaces in multi-namespace mode.

import { dnsLabel } from '../../api/names.ts'

export type NamespaceMap = {
  /** Returns undefined if objects of this namespace are not synced. */
  readonly toHost: (namespace: string) => string | undefined
  readonly toVirtual: (namespace: string) => string | undefined
  /** All possible host namespaces; undefined if there are patterns. */
  readonly hostNamespaces: readonly string[] | undefined
  readonly problems: readonly { readonly from: string; readonly message: string }[]
}

type Halves = readonly [string, string]
type Pattern = { readonly from: Halves; readonly to: Halves }

/** Exact names win over patterns, longer patterns over shorter ones. */
export function namespaceMap(byName: { readonly [from: string]: string }): NamespaceMap {
  const problems: { from: string; message: string }[] = []
  const exact = new Map<string, string>()
  const patterns: Pattern[] = []
  const taken = new Map<string, string>()
  for (const [from, to] of Object.entries(byName)) {
    const stars = [from, to].map(text => text.split('*').length - 1)
    const bad = [from, to].find(text => dnsLabel(text.replace('*', 'x')).length > 0)
    const other = taken.get(to)
    if (stars[0] !== stars[1] || (stars[0] as number) > 1)
      problems.push({ from, message: `${from} → ${to}: use one * on both sides, or none` })
    else if (bad !== undefined)
      problems.push({ from, message: `${from} → ${to}: ${bad} is not a valid namespace name` })
    else if (other !== undefined)
      problems.push({ from, message: `${from} → ${to}: ${other} already maps to it, and names would collide` })
    else if (stars[0]) patterns.push({ from: halves(from), to: halves(to) })
    else exact.set(from, to)
    taken.set(to, from)
  }
  const length = ({ from }: Pattern) => from[0].length + from[1].length
  patterns.sort((a, b) => length(b) - length(a))
  const byHost = new Map([...exact].map(([from, to]) => [to, from]))
  const toHost = (namespace: string) => {
    const pattern = patterns.find(({ from }) => isMatch(from, namespace))
    return exact.get(namespace) ?? pattern?.to.join(middle(pattern.from, namespace))
  }
  return {
    problems,
    toHost,
    toVirtual: namespace => {
      const found = patterns
        .filter(({ to }) => isMatch(to, namespace))
        .map(({ from, to }) => from.join(middle(to, namespace)))
        .find(candidate => toHost(candidate) === namespace)
      return byHost.get(namespace) ?? found
    },
    hostNamespaces: patterns.length ? undefined : [...byHost.keys()],
  }
}

const halves = (text: string) => text.split('*') as unknown as Halves
const isMatch = ([head, tail]: Halves, text: string) =>
  text.length >= head.length + tail.length && text.startsWith(head) && text.endsWith(tail)
const middle = ([head, tail]: Halves, text: string) => text.slice(head.length, text.length - tail.length)
