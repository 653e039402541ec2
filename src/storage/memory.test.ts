// Runs the store suite on the memory engine.

import { storeSuite } from '../../test/conformance/store.ts'
import { openMemoryStore } from './memory.ts'

storeSuite('memory', async options => openMemoryStore(options), 2000)
