// Runs the resources suite with every implementation: in process on both engines, and over HTTP through the client.

import { buildApiServer, openRemoteApiServer } from '../support/in-process.ts'
import { resourcesSuite } from './resources.ts'

resourcesSuite('in process, memory', options => buildApiServer({ ...options, engine: 'memory' }))
resourcesSuite('in process, sqlite', options => buildApiServer({ ...options, engine: 'sqlite' }))
resourcesSuite('client over HTTP', options => openRemoteApiServer(options))
