// A tab of an object page, and its properties.

import type { ComponentType } from 'react'
import type { Kind } from '../../api/kind.ts'
import type { Ref, Resource } from '../../api/object.ts'

export type TabProps = {
  readonly kind: Kind
  readonly at: Ref
  /** For secrets without their data. */
  readonly object: Resource
}

export type ObjectTab = { readonly name: string; readonly label: string; readonly Content: ComponentType<TabProps> }
