/** The process that reads scenarios. */
import { serveJobs } from '../workers/serve-jobs.ts'
import { givesWay, NICE_ASKED } from './low-priority.ts'
import { read } from './reading.ts'

givesWay(NICE_ASKED)
serveJobs(read)
