// A history of half a minute instead of ten, so that its size is stable after a minute. Loaded before the server with --import.

import { applyEdits } from './edits.ts'

applyEdits('short history', [{ file: 'storage/event-log.ts', from: 'minAgeMs = 600_000', to: 'minAgeMs = 30_000' }])
