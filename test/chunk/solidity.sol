// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

interface IToken {
    function transfer(address to, uint256 amount) external returns (bool);
    function balanceOf(address who) external view returns (uint256);
}

/// @title A box for tokens
contract Vault {
    struct Deposit {
        address owner;
        uint256 amount;
        uint64 until;
    }

    event Stored(address indexed who, uint256 amount);
    mapping(address => Deposit) public deposits;
    IToken public token;

    modifier onlyOwner() {
        require(deposits[msg.sender].owner == msg.sender, "not yours");
        _;
    }

    constructor(IToken _token) {
        token = _token;
        emit Stored(msg.sender, 0);
    }

    /// Puts tokens away until a time.
    function store(uint256 amount, uint64 until) external {
        require(until > block.timestamp, "past");
        deposits[msg.sender] = Deposit(msg.sender, amount, until);
        emit Stored(msg.sender, amount);
    }
}
