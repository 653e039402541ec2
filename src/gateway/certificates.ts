// The certificate files of a standalone gateway, or the CA that issues its certificate.

import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from '../host/command.ts'
import { fileProblem } from '../host/fs-errors.ts'
import { makeDirectory } from '../host/make-directory.ts'
import { authorityIn } from '../serving/authority.ts'
import type { Pair } from '../serving/certificate.ts'
import { type CertificateSource, ownCertificate, pairProblems } from '../serving/tls.ts'
import type { Change } from './config/reload-transaction.ts'
import type { GatewayConfig } from './config/schema.ts'

export interface Certificates {
  /** The certificate source of one listener. */
  view(): CertificateSource
  /** Throws UsageError. undefined: nothing changed. */
  prepare(config: GatewayConfig): Change | undefined
  stop(): void
}

/** Throws UsageError. */
export function openCertificates(first: GatewayConfig, file: string, now: () => number): Certificates {
  let { source, stamp } = certificateOf(first, file, now)
  const followers = new Set<(pair: Pair) => void>()
  const notify = (pair: Pair) => {
    for (const follower of followers) follower(pair)
  }
  source.follow(notify)
  return {
    view() {
      let subscriber: ((pair: Pair) => void) | undefined
      return {
        get current() {
          return source.current
        },
        follow(changed) {
          subscriber = changed
          followers.add(changed)
        },
        stop: () => void (subscriber && followers.delete(subscriber)),
      }
    },
    prepare(config) {
      const [before, next] = [{ source, stamp }, certificateOf(config, file, now)]
      if (next.stamp === stamp) return void next.source.stop()
      const put = (one: Certificate) => {
        ;({ source, stamp } = one)
        source.follow(notify)
        notify(source.current)
      }
      return {
        use: () => put(next),
        drop() {
          next.source.stop()
          if (source === next.source) put(before)
        },
        done: () => before.source.stop(),
      }
    },
    stop: () => source.stop(),
  }
}

type Certificate = { readonly source: CertificateSource; readonly stamp: string }

/** Creates the gateway's own CA if it is missing. */
function certificateOf(config: GatewayConfig, file: string, now: () => number): Certificate {
  const { tls = {} } = config
  const pair = pairOf(config, file)
  if (pair && !tls.directory)
    return { source: { current: pair, follow: () => {}, stop: () => {} }, stamp: JSON.stringify(pair) }
  try {
    const directory = resolve(dirname(file), tls.directory ?? '')
    makeDirectory(directory)
    const names = [...new Set(['localhost', '127.0.0.1', '::1', hostname(), ...(tls.names ?? [])])]
    const authority = pair ?? authorityIn(directory, now())
    return {
      source: ownCertificate(authority, names, now),
      stamp: JSON.stringify([authority.certificate, authority.key, names]),
    }
  } catch (error) {
    throw new UsageError([`${file}: tls: ${(error as Error).message}`])
  }
}

/** The certificate, or the CA that issues it. undefined: the CA must be created. Throws UsageError for unreadable files and pairs that do not match. */
export function pairOf({ tls = {} }: GatewayConfig, file: string): Pair | undefined {
  const own = tls.directory ? [join(tls.directory, 'ca.crt'), join(tls.directory, 'ca.key')] : undefined
  const paths = (own ?? [tls.certificate, tls.key]).map(path => resolve(dirname(file), path ?? ''))
  const missing = paths.filter(path => !existsSync(path))
  if (own && missing.length === 2) return undefined
  const problems: string[] = []
  const [certificate = '', key = ''] = paths.map(path => {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      problems.push(fileProblem(path, error))
      return undefined
    }
  })
  // Another program may be replacing both files. A new CA would overwrite one of them.
  if (own && missing.length === 1)
    problems.push('only one of ca.crt and ca.key exists: add the other, or remove both to let the gateway create a CA')
  const [certificatePath = '', keyPath = ''] = paths
  if (problems.length === 0)
    problems.push(...pairProblems({ certificate, key }, { certificate: certificatePath, key: keyPath }))
  if (problems.length) throw new UsageError(problems.map(text => `${file}: tls: ${text}`))
  return { certificate, key }
}
