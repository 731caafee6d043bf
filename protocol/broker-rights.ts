/**
 * What each identity at the broker may say and hear: the controller, one GPU server, one client. The broker
 * refuses all else, so that a server that is taken over speaks for no other, hears no other's commands, and
 * reads no other's answers.
 */
import { clientInbox } from './inbox.ts'
import { clientSubject, leaderSubject, nodeSubject } from './subjects.ts'

export type Identity =
  | { readonly kind: 'controller' }
  | { readonly kind: 'node'; readonly nodeId: string }
  | { readonly kind: 'client'; readonly clientId: string }
  /** Simulated servers behind one connection: it may speak for every node. For trials. */
  | { readonly kind: 'fleet' }

export interface BrokerRights {
  readonly publish: readonly string[]
  readonly subscribe: readonly string[]
  /** It may answer whoever asked it, once, where that one said. */
  readonly mayAnswer: boolean
}

const LEADER_SUBJECT = leaderSubject()

/**
 * `inbox`: where its answers come in, and only its own; a client's follows from its name (protocol/inbox.ts).
 */
export function brokerRights(identity: Identity, inbox: string): BrokerRights {
  const answers = `${inbox}.>`
  switch (identity.kind) {
    case 'controller':
      return {
        publish: [nodeSubject('*', 'command'), LEADER_SUBJECT],
        subscribe: [...spokenBy('*'), clientSubject('*', '*'), answers],
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
    publish: spokenBy(nodeId),
    subscribe: [nodeSubject(nodeId, 'command'), LEADER_SUBJECT, answers],
    mayAnswer: true,
  }
}

function spokenBy(nodeId: string): readonly string[] {
  return [
    nodeSubject(nodeId, 'hello'),
    nodeSubject(nodeId, 'heartbeat'),
    nodeSubject(nodeId, 'event'),
    nodeSubject(nodeId, 'telemetry'),
  ]
}
