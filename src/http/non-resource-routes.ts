// Routes that are not resources: discovery, OpenAPI, health, metrics and version, below the prefix and at the root (D1).

import type { Kind } from '../api/kind.ts'
import type { Issuer } from '../auth/tokens/issuer.ts'
import type { Exchange } from '../serving/exchange.ts'
import { type Checks, healthPages } from '../serving/health.ts'
import type { Metrics } from '../serving/metrics.ts'
import { type Answer, textAnswer } from '../serving/respond.ts'
import { discoveryPages } from './discovery.ts'
import { issuerPages } from './oidc-discovery.ts'
import { openapiPages } from './openapi.ts'
import type { Page } from './server.ts'
import { writeJson } from './write-result.ts'

export type PagesOptions = {
  readonly kinds: readonly Kind[]
  readonly checks: Checks
  readonly metrics: Metrics
  readonly now: () => number
  readonly version: string
  readonly issuer: Issuer
}

export function openRoutes({ kinds, checks, metrics, now, version, issuer }: PagesOptions): {
  readonly pages: Page
  readonly rootPages: Page
} {
  const health = healthPages(checks)
  const parts = [health, versionPage(version), discoveryPages(kinds), openapiPages(kinds, now), indexPage]
  const rootParts = [health, metricsPage(metrics), issuerPages(issuer)]
  return { pages: first(parts), rootPages: first(rootParts) }
}

type Part = (path: string, exchange: Exchange) => Answer | undefined

const first =
  (parts: readonly Part[]): Part =>
  (path, exchange) => {
    for (const part of parts) {
      const answer = part(path, exchange)
      if (answer) return answer
    }
    return undefined
  }

/** The minor version tells clients which Kubernetes API conventions to expect (wire §0). */
function versionPage(version: string): Part {
  const page = {
    major: '1',
    minor: '32',
    gitVersion: `v1.32.0+platform-${version}`,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: `node${process.versions.node}`,
    compiler: 'node',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  }
  return (path, exchange) => (path === '/version' ? writeJson(200, page, 'json', exchange) : undefined)
}

const index = ['/api', '/apis', '/healthz', '/livez', '/openapi/v2', '/openapi/v3', '/readyz', '/version']
const indexPage: Part = (path, exchange) =>
  path === '/' ? writeJson(200, { paths: index }, 'json', exchange) : undefined

function metricsPage(metrics: Metrics): Part {
  return path =>
    path === '/metrics'
      ? { ...textAnswer(200, metrics.render()), type: 'text/plain; version=0.0.4; charset=utf-8' }
      : undefined
}
