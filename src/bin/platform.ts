// The one executable: a table of commands. Reads argv and hands it on with the world that commands see.

import { type Command, defineCommand, type Flags } from '../cli/command.ts'
import { commands as ownCommands } from '../cli/index.ts'
import { runCommand } from '../cli/run-command.ts'
import { adminReset } from './admin-reset.ts'
import { auditHash } from './audit-hash.ts'
import { configCheck } from './config.ts'
import { gateway } from './gateway.ts'
import { io } from './io.ts'
import { serve } from './serve.ts'
import { flagOf, table, variableOf } from './settings.ts'
import { vclusterSync } from './sync.ts'
import { version } from './version.ts'

/** Settings as flags, for the help: `readSettings` reads them itself, with their variables and the file. */
const settings: Flags = {
  config: { type: 'text', value: 'FILE', what: 'File with settings.', variable: 'PLATFORM_CONFIG' },
  ...Object.fromEntries(
    Object.entries(table).map(([key, row]) => [
      flagOf(key),
      typeof row.default === 'boolean'
        ? { type: 'switch' as const, what: `${row.what} (or ${variableOf(key)})` }
        : {
            type: Array.isArray(row.default) ? ('list' as const) : ('text' as const),
            value: typeof row.default === 'number' ? 'N' : 'VALUE',
            what: row.what,
            variable: variableOf(key),
            ...(String(row.default) ? { default: String(row.default) } : {}),
          },
    ]),
  ),
}

type Run = (args: readonly string[], env: NodeJS.ProcessEnv) => Promise<void>

const withSettings = (words: readonly string[], what: string, run: Run, example = ''): Command =>
  defineCommand({
    words,
    what,
    examples: [{ what, command: `platform ${words.join(' ')}${example}` }],
    flags: settings,
    ownFlags: true,
    run: async ({ args }) => {
      await run(args, io.env)
      return 0
    },
  })

const commands: readonly Command[] = [
  withSettings(['serve'], 'Run the management API.', serve, ' --data data --https 0.0.0.0:8443'),
  withSettings(['config', 'check'], 'Check the settings and print them.', configCheck, ' --config platform.yaml'),
  withSettings(['admin', 'reset'], 'Make a new administrator key; the server must be stopped.', adminReset),
  withSettings(
    ['audit', 'hash'],
    'Read a value from stdin and print what the audit log shows for it.',
    auditHash,
    ' --data data < FILE',
  ),
  gateway,
  vclusterSync,
  ...ownCommands,
  defineCommand({
    words: ['version'],
    what: 'Print the version.',
    examples: [],
    flags: {},
    run: async (_, { out }) => {
      out(`${version}\n`)
      return 0
    },
  }),
]

// Ends the process even where a command that failed left a store or a watch open.
process.exit(await runCommand(commands, process.argv.slice(2), io))
