// Runs the resources suite through every door: in process on both engines, and over HTTP through the client.

import { openHouse, openRemoteHouse } from '../support/in-process.ts'
import { resourcesSuite } from './resources.ts'

resourcesSuite('in process, memory', options => openHouse({ ...options, engine: 'memory' }))
resourcesSuite('in process, sqlite', options => openHouse({ ...options, engine: 'sqlite' }))
resourcesSuite('client over HTTP', options => openRemoteHouse(options))
