// /livez, /readyz and /healthz: lists of checks, as a summary, verbose, or one check alone (wire §1.5).

import type { Exchange, Query } from './exchange.ts'
import { type Answer, textAnswer } from './respond.ts'

export type Check = {
  readonly name: string
  /** undefined: healthy. Otherwise the reason, which the response does not show. */
  readonly failure: () => string | undefined
  /** The public result of a check: ok or not. */
  readonly about?: () => string
}

export type Checks = { readonly livez: readonly Check[]; readonly readyz: readonly Check[] }

export function healthPages(checks: Checks): (path: string, exchange: Exchange) => Answer | undefined {
  return (path, exchange) => {
    const [, page, one, ...rest] = path.split('/')
    if ((page !== 'livez' && page !== 'readyz' && page !== 'healthz') || rest.length) return undefined
    const all = page === 'livez' ? checks.livez : checks.readyz
    const selected = one === undefined ? all : all.filter(check => check.name === one)
    if (one !== undefined && selected.length === 0) return undefined
    return report(page, selected, exchange.query)
  }
}

function report(page: string, checks: readonly Check[], query: Query): Answer {
  const excluded = new Set(query.getAll('exclude'))
  const failed = checks.filter(check => !excluded.has(check.name) && check.failure() !== undefined)
  const lines = checks.map(check => {
    if (excluded.has(check.name)) return `[+]${check.name} excluded: ok`
    const about = check.about?.()
    if (failed.includes(check)) return `[-]${check.name} failed: ${about ?? 'reason withheld'}`
    return `[+]${check.name} ok${about === undefined ? '' : `: ${about}`}`
  })
  if (failed.length) return textAnswer(500, `${[...lines, `${page} check failed`].join('\n')}\n`)
  return textAnswer(200, query.has('verbose') ? `${[...lines, `${page} check passed`].join('\n')}\n` : 'ok')
}
