/** Server for the reports of the agents. */
import { type AgentAnswer, type AgentReport, checkAgentReport } from '../../protocol/agent-messages.ts'
import { CallerServer, type CallerServerOptions, Forbidden, Malformed } from './caller-server.ts'

export const AGENT_PATH = '/agent'
/** Common name in the certificate with which agents call. */
export const AGENT_CALLER = 'headroom-agent'

export interface AgentServerOptions extends Omit<
  CallerServerOptions,
  'routes' | 'maxConnections' | 'maxRequestBytes'
> {
  /** Node of the agent with this token; null: it is not of an agent. */
  readonly nodeOf: (token: string) => Promise<string | null>
  readonly reported: (report: AgentReport) => Promise<AgentAnswer | null>
}

const MAX_AGENTS = 5_000
/** 1,024 pods. */
export const MAX_AGENT_MESSAGE_BYTES = 2 * 1024 * 1024

/** Resolves once it listens. */
export function startAgentServer(options: AgentServerOptions): Promise<CallerServer> {
  const ofAgents = new Map([
    [
      AGENT_PATH,
      async (asked: unknown, token: string) => {
        const fault = checkAgentReport(asked)
        if (fault !== null) throw new Malformed(`report${fault}`)
        const report = asked as AgentReport
        const node = await options.nodeOf(token)
        if (node !== report.node)
          throw new Forbidden(`the token is ${node === null ? 'not that of an agent' : `of node ${node}`}`)
        return options.reported(report)
      },
    ],
  ])
  const limits = { maxConnections: MAX_AGENTS, maxRequestBytes: MAX_AGENT_MESSAGE_BYTES }
  return CallerServer.start({ ...options, ...limits, routes: new Map([[AGENT_CALLER, ofAgents]]) })
}
