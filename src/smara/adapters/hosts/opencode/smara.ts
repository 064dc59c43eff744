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

/** Let what waits be taken in while nobody waits for it; it ends by itself within a minute. */
function drain() {
  try {
    const child = spawn(PROGRAM, ["hook", "opencode", "drain"], { stdio: "ignore" })
    child.on("error", () => undefined)
    child.unref()
  } catch {
    return
  }
}

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
  const at = (sessionID) => ({ sessionID, directory })

  // The pack of a session is asked for once, and again after a compaction; a system prompt is made far more often.
  const pack = (sessionID, source) => {
    const found = hook("session.start", { ...at(sessionID), source }, START_MS)
    packs.set(sessionID, found)
    return found
  }

  return {
    event: async ({ event }) => {
      const facts = event?.properties ?? {}
      const sessionID = facts.sessionID ?? facts.info?.id ?? facts.info?.sessionID ?? facts.part?.sessionID
      if (!sessionID) return
      if (event.type === "message.part.updated" && facts.part?.type === "text") answers.set(sessionID, facts.part.text)
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
      if (event.type === "file.edited") await hook("file.edited", { ...at(sessionID), file_path: facts.file }, STEP_MS)
      if (event.type === "todo.updated") await hook("todo.updated", { ...at(sessionID), todos: facts.todos }, STEP_MS)
    },

    "chat.message": async (input, output) => {
      const prompt = cut(textOf(output?.parts))
      const said = await hook("chat.message", { ...at(input.sessionID), messageID: input.messageID, prompt }, STEP_MS)
      const last = output?.parts?.findLast?.((part) => part?.type === "text")
      if (said && last) last.text += `\n\n${said}`
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
