// Walks the tree of an expression: every node, and the names that it uses and does not bind. Called by expression.ts.

import type { AnyNode, Identifier, Pattern } from 'acorn'

/** Every node once, parents first. A list of its own instead of recursion: a tree may be thousands deep. */
export function visit(root: AnyNode, see: (node: AnyNode) => void): void {
  const open = [root]
  for (let node = open.pop(); node; node = open.pop()) {
    see(node)
    open.push(...childrenOf(node).toReversed())
  }
}

function childrenOf(node: AnyNode): AnyNode[] {
  return Object.values(node)
    .flat()
    .filter((one): one is AnyNode => typeof one === 'object' && one !== null && typeof one.type === 'string')
}

type Scoped = { readonly node: AnyNode; readonly bound: ReadonlySet<string> }

/** A function's names count as bound in all of it; that a `let` ends with its block is found when it runs. */
export function freeNames(root: AnyNode): readonly Identifier[] {
  const free: Identifier[] = []
  const open: Scoped[] = [{ node: root, bound: new Set() }]
  for (let one = open.pop(); one; one = open.pop()) {
    const { node, bound } = one
    if (node.type === 'Identifier' && !bound.has(node.name)) free.push(node)
    const inner = isFunction(node) || node.type === 'ClassExpression' ? new Set([...bound, ...boundIn(node)]) : bound
    open.push(...referring(node).map(child => ({ node: child, bound: inner })))
  }
  return free.toSorted((left, right) => left.start - right.start)
}

function isFunction(node: AnyNode): boolean {
  return ['FunctionExpression', 'FunctionDeclaration', 'ArrowFunctionExpression'].includes(node.type)
}

/** Parameters, its own name, `arguments`, and everything declared in the body. */
function boundIn(root: AnyNode): string[] {
  const names = root.type === 'ArrowFunctionExpression' ? [] : ['arguments']
  visit(root, node => {
    if (node.type === 'VariableDeclarator') names.push(...namesIn(node.id))
    else if (node.type === 'CatchClause' && node.param) names.push(...namesIn(node.param))
    else if (node.type === 'ClassDeclaration' || node.type === 'ClassExpression') names.push(node.id?.name ?? '')
    else if (node.type === 'FunctionDeclaration' || (node.type === 'FunctionExpression' && node === root))
      names.push(node.id?.name ?? '')
    if (node === root && 'params' in node) names.push(...node.params.flatMap(namesIn))
  })
  return names
}

function namesIn(pattern: Pattern | null): string[] {
  switch (pattern?.type) {
    case 'Identifier':
      return [pattern.name]
    case 'ObjectPattern':
      return pattern.properties.flatMap(one => namesIn(one.type === 'RestElement' ? one.argument : one.value))
    case 'ArrayPattern':
      return pattern.elements.flatMap(namesIn)
    case 'AssignmentPattern':
      return namesIn(pattern.left)
    case 'RestElement':
      return namesIn(pattern.argument)
    default:
      return []
  }
}

/** The children that can use a name: `a.b` does not use `b`, `{ b: 1 }` neither, and a label is no name. */
function referring(node: AnyNode): AnyNode[] {
  const isKeyed = node.type === 'Property' || node.type === 'MethodDefinition' || node.type === 'PropertyDefinition'
  const name =
    node.type === 'MemberExpression' && !node.computed
      ? node.property
      : isKeyed && !node.computed
        ? node.key
        : 'label' in node
          ? node.label
          : undefined
  // In `{ b }` key and value are one node, which is a use.
  const isShort = node.type === 'Property' && node.shorthand
  return childrenOf(node).filter(child => isShort || child !== name)
}
