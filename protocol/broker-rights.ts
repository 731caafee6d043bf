/**
 * What each identity may publish and subscribe to at the broker: the controller, one GPU server, one client.
 * The broker refuses everything else, so a compromised server cannot speak for another server, receive its
 * commands or read its answers.
 */
import { clientInbox } from './inbox.ts'
import { clientSubject, leaderSubject, nodeSubject } from './subjects.ts'

export type Identity =
  | { readonly kind: 'controller' }
  | { readonly kind: 'node'; readonly nodeId: string }
  | { readonly kind: 'client'; readonly clientId: string }
  /** Simulated servers behind one connection, which may speak for every node. For trials. */
  | { readonly kind: 'fleet' }

export interface BrokerRights {
  readonly publish: readonly string[]
  readonly subscribe: readonly string[]
  /** May publish one reply to each request, to the reply subject of that request. */
  readonly mayAnswer: boolean
}

const LEADER_SUBJECT = leaderSubject()

/**
 * @param inbox the only subject prefix on which the identity receives answers. The inbox of a client follows
 * from its name (protocol/inbox.ts).
 */
export function brokerRights(identity: Identity, inbox: string): BrokerRights {
  const answers = `${inbox}.>`
  switch (identity.kind) {
    case 'controller':
      return {
        publish: [nodeSubject('*', 'command'), LEADER_SUBJECT],
        subscribe: [...publishedByNode('*'), clientSubject('*', '*'), answers],
        mayAnswer: true,
      }
    case 'node':
      return nodeRights(identity.nodeId, answers)
    case 'fleet':
      return nodeRights('*', answers)
    case 'client':
      return clientRights(identity.clientId)
  }
}

function clientRights(clientId: string): BrokerRights {
  return {
    publish: [clientSubject(clientId, '*')],
    subscribe: [LEADER_SUBJECT, `${clientInbox(clientId)}.>`],
    mayAnswer: false,
  }
}

function nodeRights(nodeId: string, answers: string): BrokerRights {
  return {
    publish: publishedByNode(nodeId),
    subscribe: [nodeSubject(nodeId, 'command'), LEADER_SUBJECT, answers],
    mayAnswer: true,
  }
}

function publishedByNode(nodeId: string): readonly string[] {
  return [
    nodeSubject(nodeId, 'hello'),
    nodeSubject(nodeId, 'heartbeat'),
    nodeSubject(nodeId, 'event'),
    nodeSubject(nodeId, 'telemetry'),
  ]
}
