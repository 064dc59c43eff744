// Smara for OpenCode: hands what happens to `smara hook opencode EVENT`, and gives the model what comes back.
// Managed by `smara setup opencode`; `smara setup opencode --remove` takes it away again.
// It decides nothing, fails silently, and never waits longer than its timeouts. Types stand in comments, so that the
// same file runs where TypeScript is not known.

import { spawn } from "node:child_process"

const PROGRAM = "smara"
const START_MS = 10_000
const STEP_MS = 5_000
const MOST_CHARACTERS = 200_000

/**
 * Run one hook; what it says, or nothing when it fails, is slow, or has nothing to say.
 * @param {string} event
 * @param {Record<string, unknown>} payload
 * @param {number} timeout
 * @returns {Promise<string>}
 */
function hook(event, payload, timeout) {
  return new Promise((resolve) => {
    try {
      const child = spawn(PROGRAM, ["hook", "opencode", event], { stdio: ["pipe", "pipe", "ignore"] })
      // Not the option `timeout`: when there is no such program, its timer would keep the host from leaving.
      setTimeout(() => child.kill(), timeout).unref()
      let said = ""
      child.stdout.on("data", (piece) => (said += String(piece)))
      child.on("error", () => resolve(""))
      child.on("close", () => resolve(contextOf(said)))
      child.stdin.on("error", () => undefined)
      child.stdin.end(JSON.stringify({ timestamp: Date.now(), ...payload }))
    } catch {
      resolve("")
    }
  })
}

/** @type {import("node:child_process").ChildProcess | undefined} */
let draining

/** Let what waits be taken in while nobody waits for it; one at a time, and it goes when the host goes. */
function drain() {
  if (draining) return
  try {
    const child = spawn(PROGRAM, ["hook", "opencode", "drain"], { stdio: "ignore" })
    draining = child
    child.on("error", () => (draining = undefined))
    child.on("exit", () => (draining = undefined))
    child.unref()
  } catch {
    return
  }
}

/** What is cut short is taken in the next time. */
const leave = () => void draining?.kill()
process.on("exit", leave)

/** @param {string} said */
function contextOf(said) {
  try {
    const answer = JSON.parse(said)
    return typeof answer?.context === "string" ? answer.context : ""
  } catch {
    return ""
  }
}

/** @param {unknown} text */
const cut = (text) => String(text ?? "").slice(0, MOST_CHARACTERS)

/** @param {any[]} parts */
const textOf = (parts) =>
  (parts ?? []).filter((part) => part?.type === "text" && !part?.synthetic).map((part) => part.text).join("\n")

/** @param {{ directory: string }} input */
export const Smara = async ({ directory }) => {
  const packs = new Map()
  const answers = new Map()
  const prompts = new Set()
  const parents = new Map()
  const at = (sessionID) => {
    const parentAgentId = parents.get(sessionID)
    return parentAgentId ? { sessionID, directory, agentId: sessionID, parentAgentId } : { sessionID, directory }
  }

  // The pack of a session is asked for once, and again after a compaction; a system prompt is made far more often.
  const pack = (sessionID, source) => {
    const found = hook("session.start", { ...at(sessionID), source }, START_MS)
    packs.set(sessionID, found)
    void found.then(drain)
    return found
  }

  return {
    dispose: async () => leave(),

    event: async ({ event }) => {
      const facts = event?.properties ?? {}
      const sessionID = facts.sessionID ?? facts.info?.id ?? facts.info?.sessionID ?? facts.part?.sessionID
      if (!sessionID) return
      if (facts.info?.parentID && event.type === "session.created") parents.set(sessionID, facts.info.parentID)
      const part = event.type === "message.part.updated" ? facts.part : undefined
      if (part?.type === "text" && !prompts.has(part.messageID)) answers.set(sessionID, part.text)
      if (event.type === "session.idle") {
        const text = cut(answers.get(sessionID))
        answers.delete(sessionID)
        await hook("session.idle", { ...at(sessionID), text }, STEP_MS)
        drain()
      }
      if (event.type === "session.error") {
        await hook("session.error", { ...at(sessionID), error: cut(JSON.stringify(facts.error)) }, STEP_MS)
      }
      if (event.type === "session.compacted") {
        await hook("session.compacted", at(sessionID), STEP_MS)
        void pack(sessionID, "compact")
      }
      if (event.type === "session.deleted") {
        packs.delete(sessionID)
        await hook("session.deleted", at(sessionID), STEP_MS)
      }
      if (event.type === "todo.updated") await hook("todo.updated", { ...at(sessionID), todos: facts.todos }, STEP_MS)
    },

    "chat.message": async (input, output) => {
      const prompt = cut(textOf(output?.parts))
      const messageID = input.messageID ?? output?.message?.id
      if (messageID) prompts.add(messageID)
      const said = await hook("chat.message", { ...at(input.sessionID), messageID, prompt }, STEP_MS)
      const last = output?.parts?.findLast?.((part) => part?.type === "text")
      // A part of its own: what the person said stays as it was said. Its id comes right after the last one's.
      if (said && last) output.parts.push({ ...last, id: `${last.id}0`, text: said, synthetic: true })
    },

    "experimental.chat.system.transform": async (input, output) => {
      if (!input?.sessionID) return
      const said = await (packs.get(input.sessionID) ?? pack(input.sessionID, "startup"))
      if (said) output.system.push(said)
    },

    "tool.execute.after": async (input, output) => {
      const call = { tool: input.tool, callID: input.callID, args: input.args }
      const answer = { output: cut(output?.output), metadata: output?.metadata }
      const said = await hook("tool.execute.after", { ...at(input.sessionID), ...call, ...answer }, STEP_MS)
      if (said && output) output.output = `${output.output ?? ""}\n\n${said}`
    },

    "experimental.session.compacting": async (input) => {
      await hook("session.compacting", at(input.sessionID), STEP_MS)
    },
  }
}
