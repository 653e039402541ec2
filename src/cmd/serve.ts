// `platform serve`: reads the settings and runs the API server until a signal stops it.

import pino from 'pino'
import { runApiServer } from '../apiserver/run.ts'
import { readSettings } from '../apiserver/settings.ts'
import { shutdownSignal } from '../serving/shutdown-signal.ts'
import { openTracing } from '../serving/tracing/open.ts'
import { version } from './version.ts'

export async function serve(args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const settings = await readSettings(args, env)
  const log = pino({ level: settings.logLevel, base: null }, pino.destination({ fd: 2, sync: false }))
  const tracing = await openTracing({
    endpoint: settings['otlp.endpoint'],
    env,
    service: 'platform',
    version,
    log,
    now: Date.now,
  })
  await runApiServer({ settings, env, version, log, print: console.log, waitForShutdown: shutdownSignal, tracing })
  await tracing?.close()
  log.flush()
}
