// More slices of the cost prover than `npm test` has time for.

import { grantRows } from '../prove/cost/grant-rows.ts'
import { managedRows } from '../prove/cost/managed-rows.ts'
import { memoryRows } from '../prove/cost/memory-rows.ts'
import { largeRows, ownRows } from '../prove/cost/rows.ts'
import { scopeRows } from '../prove/cost/scope-rows.ts'
import { signInRows } from '../prove/cost/sign-in-rows.ts'
import { proveRows, proveSlices } from '../prove/cost/slices.ts'
import { unstoredRows } from '../prove/cost/unstored-rows.ts'

proveSlices({
  'bodies that are costly by their shape': /^[a-z]/,
  'every field of a team by JSON and apply': /^Team \S+ by (create by JSON|apply)$/,
  'every field of a cluster role in protobuf': /^ClusterRole \S+ by create by protobuf$/,
})

proveRows({
  ...ownRows,
  ...largeRows,
  ...managedRows,
  ...grantRows,
  ...scopeRows,
  ...signInRows,
  ...unstoredRows,
  ...memoryRows,
})
