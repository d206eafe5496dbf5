defmodule Shop.Cart do
  @moduledoc """
  A cart and what is in it.
  """
  use GenServer
  alias Shop.Item

  @timeout 5_000

  defstruct items: [], owner: nil

  @doc """
  Starts a cart for somebody.
  """
  def start_link(owner) do
    GenServer.start_link(__MODULE__, owner, name: via(owner))
  end

  @impl true
  def init(owner) do
    Process.flag(:trap_exit, true)
    {:ok, %__MODULE__{owner: owner}}
  end

  def total(%__MODULE__{items: []}), do: 0

  def total(%__MODULE__{items: items}) do
    Enum.reduce(items, 0, fn item, sum ->
      sum + item.price * item.count
    end)
  end

  defp via(owner) do
    name = {:cart, owner}
    {:via, Registry, {Shop.Registry, name}}
  end

  defmacro is_empty(cart) do
    quote do
      unquote(cart).items == []
    end
  end
end

defmodule Shop.Error do
  @type reason :: :empty | :closed
  @callback explain(reason) :: String.t()
  defexception [:reason]
end
