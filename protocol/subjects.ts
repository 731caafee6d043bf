/**
 * Subjects of the wire, version 1 (design: docs/protocol.md). The prefix can be configured; the major version
 * is part of it.
 */
export const DEFAULT_PREFIX = 'gpu.v1'

export type NodeVerb = 'hello' | 'heartbeat' | 'event' | 'telemetry' | 'command'

export type ClientVerb = 'submit' | 'cancel' | 'get' | 'keepalive'

/** `*` as verb: all verbs. */
export function clientSubject(clientId: string, verb: ClientVerb | '*', prefix = DEFAULT_PREFIX): string {
  return `${prefix}.client.${clientId}.${verb}`
}

/** The pattern on which the controller receives this verb from all clients. */
export function everyClient(verb: ClientVerb, prefix = DEFAULT_PREFIX): string {
  return clientSubject('*', verb, prefix)
}

/** The client id inside a client subject, or null when the subject has another form. */
export function clientIdOf(subject: string, prefix = DEFAULT_PREFIX): string | null {
  const start = prefix.length + 8
  if (!subject.startsWith(`${prefix}.client.`)) return null
  const end = subject.indexOf('.', start)
  return end > start ? subject.slice(start, end) : null
}

/** The subject on which the controller announces that it leads. */
export function leaderSubject(prefix = DEFAULT_PREFIX): string {
  return `${prefix}.controller.leader`
}

export function nodeSubject(nodeId: string, verb: NodeVerb, prefix = DEFAULT_PREFIX): string {
  return `${prefix}.node.${nodeId}.${verb}`
}

/** The pattern on which the controller receives this verb from all nodes. */
export function everyNode(verb: NodeVerb, prefix = DEFAULT_PREFIX): string {
  return `${prefix}.node.*.${verb}`
}

/** The node id inside a node subject, or null when the subject has another form. */
export function nodeIdOf(subject: string, prefix = DEFAULT_PREFIX): string | null {
  const start = prefix.length + 6
  if (!subject.startsWith(`${prefix}.node.`)) return null
  const end = subject.indexOf('.', start)
  return end > start ? subject.slice(start, end) : null
}
