// Walks the syntax tree of an expression and finds its free variables.

import type { AnyNode, Identifier, Pattern } from 'acorn'

/** Visits every node, parents first. Iterative, because a tree may be thousands of levels deep. */
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

/** Treats names declared in a function as bound in all of it. Block scoping errors show at run time. */
export function freeVariables(root: AnyNode): readonly Identifier[] {
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

/** Parameters, the function name, `arguments`, and all declarations in the body. */
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

/** Children that may reference a variable. Excludes `b` in `a.b` and `{ b: 1 }`, and labels. */
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
  // In `{ b }`, key and value are the same node, which is a reference.
  const isShort = node.type === 'Property' && node.shorthand
  return childrenOf(node).filter(child => isShort || child !== name)
}
