// `platform gateway`: checks the files and runs a gateway until a signal stops it.

import pino from 'pino'
import { openSetupLoader } from '../gateway/config/load.ts'
import { checkFiles, checkGateway } from '../gateway/config/preflight.ts'
import { openSetup } from '../gateway/config/reload.ts'
import { runGateway } from '../gateway/run.ts'
import { defineCommand } from '../host/command.ts'
import { otlpFlag } from '../serving/tracing/settings.ts'
import { version } from './version.ts'

export const gateway = defineCommand({
  words: ['gateway'],
  what: 'Run a gateway that authenticates tokens for connected clusters.',
  examples: [
    { what: 'Serve the clusters of a configuration file', command: 'platform gateway --config gateway.yaml' },
    { what: 'Validate the configuration', command: 'platform gateway --config gateway.yaml --check' },
  ],
  flags: {
    config: { type: 'text', value: 'FILE', what: 'The gateway.yaml. Reloaded when it changes.', required: true },
    check: {
      type: 'switch',
      what: 'Validate the files, contact the issuer, the management API and the clusters, and exit: exit code 0 valid, 1 unreachable, 2 invalid.',
    },
    ...otlpFlag,
  },
  run: async ({ flags: { config: file, check, 'otlp-endpoint': otlpEndpoint = '' } }, io) => {
    if (check) {
      const code = await checkGateway(file, io)
      if (code === 0) io.out(`${file} is valid\n`)
      return code
    }
    await checkFiles(file, io)
    const setup = openSetup(openSetupLoader(file, true, io), io.now)
    const log = pino({ level: setup.config.logLevel ?? 'info', base: null }, pino.destination({ fd: 2, sync: false }))
    await runGateway({ file, io, log, setup, version, otlpEndpoint })
    return 0
  },
})
