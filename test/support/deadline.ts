// Ends a test file that does not end by itself, and reports what keeps it alive. `npm test` loads it into every test process.

import { relative } from 'node:path'

const minutes = 10

const timer = setTimeout(() => {
  const file = relative('', process.argv[1] ?? '')
  const open = [...new Set(process.getActiveResourcesInfo())].toSorted().join(', ')
  process.stderr.write(`${file} did not end within ${minutes} minutes; still open: ${open}\n`)
  process.exit(1)
}, minutes * 60_000)
timer.unref()
