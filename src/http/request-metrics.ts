// Metrics of finished requests, under the names of kube-apiserver so that existing dashboards work. serving/inflight-limits.ts counts open requests.

import type { Metrics } from '../serving/metrics.ts'
import type { ResourceInfo } from './request-info.ts'
import type { Observation } from './server.ts'

const seconds = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60]
const longRunning = new Set(['WATCH'])

const verbs: { readonly [verb: string]: string } = {
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETECOLLECTION',
  get: 'GET',
  list: 'LIST',
  watch: 'WATCH',
}

const verbNames = Object.keys(verbs)
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

type Series = { readonly count: (by: number) => void; readonly time: (value: number) => void }

export function observeRequests(metrics: Metrics): (observation: Observation) => void {
  const total = metrics.counter('apiserver_request_total', 'Requests by verb, group, resource and code.')
  const duration = metrics.histogram('apiserver_request_duration_seconds', 'Time to answer, in seconds.', seconds)
  const known = new Map<unknown, Map<number, Series>>()
  const seriesOf = (of: unknown): Map<number, Series> => {
    const there = known.get(of)
    if (there) return there
    const made = new Map<number, Series>()
    known.set(of, made)
    return made
  }
  /** A cache for gets: the same request objects come all day, and nearly all end with the same code. */
  const usual = new WeakMap<ResourceInfo, Series>()
  const observe = ({ info, exchange, code }: Observation): Series => {
    const resource = info?.type === 'resource' ? info : undefined
    const all = seriesOf(resource?.kind)
    const place = resource ? (resource.name ? 2 : resource.namespace ? 1 : 0) : methods.indexOf(exchange.method)
    const subresource = resource?.subresource ? (resource.subresource.split('/')[0] as string) : ''
    const part = resource && subresource ? 2 + Object.keys(resource.kind.subresources).indexOf(subresource) : 0
    const id = ((resource ? verbNames.indexOf(resource.verb) : 0) * 200 + place + part * 10) * 1000 + code
    let series = all.get(id)
    if (!series) {
      const verb = resource ? (verbs[resource.verb] as string) : (methods[place] ?? 'OTHER')
      const labels = {
        component: 'apiserver',
        group: resource?.kind.group ?? '',
        resource: resource?.kind.plural ?? '',
        scope: resource ? (resource.name ? 'resource' : resource.namespace ? 'namespace' : 'cluster') : '',
        subresource,
        verb,
        version: resource?.kind.version ?? '',
      }
      series = {
        count: total({ code: String(code), dry_run: '', ...labels }),
        // A watch lasts as long as it lasts; its duration would say nothing of the server.
        time: longRunning.has(verb) ? () => {} : duration({ dry_run: '', ...labels }),
      }
      all.set(id, series)
    }
    return series
  }
  return observation => {
    const { info, code, seconds: taken } = observation
    const resource = info?.type === 'resource' && info.verb === 'get' && code === 200 ? info : undefined
    const known = resource && usual.get(resource)
    const series = known ?? observe(observation)
    if (resource && !known) usual.set(resource, series)
    series.count(1)
    series.time(taken)
  }
}
