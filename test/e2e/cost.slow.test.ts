// More slices of the cost prover than `npm test` has time for.

import { rows } from '../prove/cost/rows.ts'
import { proveRows, proveSlices } from '../prove/cost/slices.ts'

proveSlices({
  'bodies that are costly by their shape': /^[a-z]/,
  'every field of a team by JSON and apply': /^Team \S+ by (create by JSON|apply)$/,
  'every field of a cluster role in protobuf': /^ClusterRole \S+ by create by protobuf$/,
})

proveRows(rows)
