// `platform gateway`: reads the flags, checks the files, and runs a gateway until a signal stops it.

import pino from 'pino'
import { openSetupLoader } from '../gateway/config/load.ts'
import { checkFiles, checkGateway } from '../gateway/config/preflight.ts'
import { openSetup } from '../gateway/config/reload.ts'
import { runGateway } from '../gateway/run.ts'
import { defineCommand } from '../host/command.ts'

export const gateway = defineCommand({
  words: ['gateway'],
  what: 'Let tokens into connected clusters, beside them and without the service.',
  examples: [
    { what: 'Serve the clusters that a file names', command: 'platform gateway --config gateway.yaml' },
    { what: 'Say everything that is wrong with it', command: 'platform gateway --config gateway.yaml --check' },
  ],
  flags: {
    config: { type: 'text', value: 'FILE', what: 'The gateway.yaml; read again when it changes.', required: true },
    check: {
      type: 'switch',
      what: 'Look at the files, ask issuer, service and clusters, and end: 0: they can be used, 1: one of those cannot be reached, 2: they cannot.',
    },
  },
  run: async ({ flags: { config: file, check } }, io) => {
    if (check) {
      const code = await checkGateway(file, io)
      if (code === 0) io.out(`${file} can be used\n`)
      return code
    }
    await checkFiles(file, io)
    const setup = openSetup(openSetupLoader(file, true, io), io.now)
    const log = pino({ level: setup.config.logLevel ?? 'info', base: null }, pino.destination({ fd: 2, sync: false }))
    await runGateway({ file, io, log, setup })
    return 0
  },
})
